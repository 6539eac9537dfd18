"""The base of every exception this library defines, and the category of every warning it issues."""


class UndriftError(ValueError):
    """The base class of this library's exceptions.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from undrift import UndriftError, load_model
    >>> with NamedTemporaryFile() as file:
    ...     try:
    ...         load_model(file.name)
    ...     except UndriftError:
    ...         print("refused")
    refused
    """


class UndriftWarning(UserWarning):
    """Something worked, but probably not as intended.

    Examples
    --------
    >>> import warnings
    >>> from undrift import UndriftWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UndriftWarning)  # in a script that nobody watches
    """


class UndriftDeprecationWarning(UndriftWarning, FutureWarning):
    """A name still works, and will be gone in the next release."""
