from tests.outside.mistakes import outside

__all__ = ["outside"]
