from tests.store.contract_suite.messages import MessagesContract


class TestMessages(MessagesContract):
    """The contract's part on ``bridge/store/messages.py``."""
