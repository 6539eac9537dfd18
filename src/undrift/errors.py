"""The base of every exception this library defines, and the category of every warning it issues."""


class UndriftError(ValueError):
    """The base class of this library's exceptions."""


class UndriftWarning(UserWarning):
    """Something worked, but probably not as intended."""


class UndriftDeprecationWarning(UndriftWarning, FutureWarning):
    """A name still works, and will be gone in the next release."""
