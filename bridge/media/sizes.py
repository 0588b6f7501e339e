"""How large a file is, in words. Pure."""


def shown_size(count: int) -> str:
    """``count`` bytes as people read them: up to three digits before the point."""
    if count < 1024:
        return "1 byte" if count == 1 else f"{count} bytes"
    if count < 1_048_525:  # from there on it would be shown as 1024.0 KiB
        return f"{count / 1024:.1f} KiB"
    return f"{count / 1_048_576:.1f} MiB"
