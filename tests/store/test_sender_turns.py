from tests.store.contract_suite.sender_turns import SenderTurnsContract


class TestSenderTurns(SenderTurnsContract):
    """The contract's part on ``bridge/store/sender_turns.py``."""
