from tests.store.contract_suite.dead import DeadContract


class TestDead(DeadContract):
    """The contract's part on ``bridge/store/dead.py``."""
