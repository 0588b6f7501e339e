from tests.store.contract_suite.outbox import OutboxContract


class TestOutbox(OutboxContract):
    """The contract's part on ``bridge/store/outbox.py``."""
