from tests.store.contract_suite.forget import ForgetContract


class TestForget(ForgetContract):
    """The contract's part on ``bridge/store/forget.py``."""
