from django.apps import AppConfig
from django.db.models.signals import post_migrate

from audit import partitions


class AuditConfig(AppConfig):
    name = "audit"

    def ready(self) -> None:
        post_migrate.connect(partitions.after_migrate, sender=self, dispatch_uid="audit.partitions")
