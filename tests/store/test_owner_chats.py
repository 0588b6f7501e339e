from tests.store.contract_suite.owner_chats import OwnerChatsContract


class TestOwnerChats(OwnerChatsContract):
    """The contract's part on ``bridge/store/owner_chats.py``."""
