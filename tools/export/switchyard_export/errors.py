class ExportError(Exception):
    """Something a person can put right. The message says what, which value, which limit and which remedy."""
