"""The one error of the stack: something an operator has to read and act on."""


class StackError(Exception):
    """Its text is printed as the last line and the command ends with status 1."""
