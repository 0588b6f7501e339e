from tests.store.contract_suite.sessions import SessionsContract


class TestSessions(SessionsContract):
    """The contract's part on ``bridge/store/sessions.py``."""
