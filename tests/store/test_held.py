from tests.store.contract_suite.held import HeldContract


class TestHeld(HeldContract):
    """The contract's part on ``bridge/store/held.py``."""
