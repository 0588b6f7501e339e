from tests.store.contract_suite.choices import ChoicesContract


class TestChoices(ChoicesContract):
    """The choices on every backend."""
