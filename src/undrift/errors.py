"""The category of every warning this library raises, so that users can filter them as one."""


class UndriftWarning(UserWarning):
    """Something worked, but probably not as intended."""
