from tests.store.contract_suite.signs import SignsContract


class TestSigns(SignsContract):
    """The signs on every backend."""
