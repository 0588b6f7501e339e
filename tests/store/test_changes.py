from tests.store.contract_suite.changes import ChangesContract


class TestChanges(ChangesContract):
    """The contract's part on ``bridge/store/changes.py``."""
