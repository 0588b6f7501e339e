from tests.store.contract_suite.accounts import AccountsContract


class TestAccounts(AccountsContract):
    """The contract's part on ``bridge/store/accounts.py``."""
