from tests.store.contract_suite.usage import UsageContract


class TestUsage(UsageContract):
    """The usage on every backend."""
