from django.apps import AppConfig
from django.db.backends.signals import connection_created


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import actions, checks, tenancy  # app ready

        actions.register_all()
        checks.register_all()
        connection_created.connect(tenancy.guard_connection, dispatch_uid="accounts.tenancy.guard")
