"""Sealed values: a binary column that takes and gives `Sealed` alone, a class that shows nothing of what it holds.

Opening and sealing is `accounts.keys`; this file only carries ciphertext, and ties it to the one place it belongs to.
"""

from typing import Any, NoReturn

from django.db import models

from accounts.crypto import ALGORITHM_AES_256_GCM, FORMAT, MIN_ENVELOPE_BYTES, Binding, KeyUse


class Sealed:
    """Ciphertext and the place it was read from. Rendering and iterating raise; pickling keeps ciphertext."""

    __slots__ = ("_binding", "_envelope")

    def __init__(self, envelope: bytes, binding: Binding | None = None) -> None:
        self._envelope = bytes(envelope)
        self._binding = binding

    @property
    def envelope(self) -> bytes:
        return self._envelope

    @property
    def binding(self) -> Binding | None:
        return self._binding

    def __reduce__(self) -> tuple[type["Sealed"], tuple[bytes, Binding | None]]:
        return Sealed, (self._envelope, self._binding)

    def __repr__(self) -> str:
        return "<sealed>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("A sealed value has no text; open it through accounts.keys with a grant.")

    __str__ = __format__ = __bytes__ = __iter__ = __len__ = _refuse

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and other._envelope == self._envelope

    def __hash__(self) -> int:
        return hash(self._envelope)


class _SealedAttribute:
    """Binds the value to its row when it is read, so that it opens there or nowhere."""

    def __init__(self, field: "SealedField") -> None:
        self.field = field

    def __get__(self, instance: models.Model | None, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(self.field.attname)
        if value is None and self.field.attname not in instance.__dict__:
            instance.refresh_from_db(fields=[self.field.attname])
            value = instance.__dict__[self.field.attname]
        return None if value is None else Sealed(value.envelope, self.field.binding_of(instance))

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = self.field.checked(value)


class SealedField(models.BinaryField):  # type: ignore[type-arg] # not subscriptable at run time
    """An envelope of accounts.crypto; the database CHECK refuses what is not even shaped like one.

    `number` is stable for ever within its table and part of the associated data; `use` says which key seals it.
    """

    def __init__(self, *, number: int, use: KeyUse | int, null: bool = False, **options: Any) -> None:
        self.number, self.use = number, KeyUse(use)
        super().__init__(null=null, editable=False, **options)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("editable", None)
        return name, path, args, kwargs | {"number": self.number, "use": int(self.use)}

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        super().contribute_to_class(cls, name, private_only)
        setattr(cls, self.attname, _SealedAttribute(self))

    def get_default(self) -> None:
        """There is no default: a row is sealed before it is saved."""
        return

    def db_check(self, connection: Any) -> str:
        column = connection.ops.quote_name(self.column)
        return (
            f"octet_length({column}) >= {MIN_ENVELOPE_BYTES} AND get_byte({column}, 0) = {FORMAT} "
            f"AND get_byte({column}, 1) = {ALGORITHM_AES_256_GCM}"
        )

    def binding_of(self, instance: Any) -> Binding:
        """The place of this field in this row; the subject's own row is its own person."""
        subject_id = getattr(instance, "subject_id", None) or getattr(instance, "own_subject_id", None)
        return Binding(
            tenant_id=instance.tenant_id,
            subject_id=subject_id,
            table=instance.table_number,
            row_id=instance.pk,
            field=self.number,
            version=instance.content_version,
            use=self.use,
        )

    def checked(self, value: Any) -> Sealed | None:
        if value is None or isinstance(value, Sealed):
            return value
        raise TypeError(f"{self.name} takes a Sealed value, not {type(value).__name__}.")

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Sealed | None:
        return None if value is None else Sealed(value)

    def to_python(self, value: Any) -> Any:
        return self.checked(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        checked = self.checked(value)
        return None if checked is None else super().get_db_prep_value(checked.envelope, connection, prepared)

    def value_to_string(self, obj: Any) -> str:
        raise TypeError("Sealed fields are not serialised.")
