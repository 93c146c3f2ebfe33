"""An order of django-fsm-2 4.2.4 is shipped and cancelled at the same moment.

``python benchmarks/applications/transitions.py FOLDER`` starts a PostgreSQL server, and prints a
report for two models: a plain one, and one with the library's ``ConcurrentTransitionMixin``. It
writes their histories, certificates and pages into the folder. The packages are in
``requirements.txt`` beside this file.
"""

from __future__ import annotations

from applications import begin_django, judged, print_reports, with_server


def reports(folder):
    """Yield what a shipment and a cancellation do at the same time, with each model."""
    with with_server() as host:
        begin_django(host, "django_fsm")
        from django.db import connection, models, transaction
        from django_fsm import ConcurrentTransitionMixin, FSMField
        from django_fsm import transition as becomes

        class Entry(models.Model):
            order = models.IntegerField()
            kind = models.CharField(max_length=10)

            class Meta:
                app_label = "orders"

        class Order(models.Model):
            state = FSMField(default="paid")

            class Meta:
                abstract = True
                app_label = "orders"

            @becomes(field=state, source="paid", target="shipped")
            def ship(self):
                Entry.objects.create(order=self.pk, kind="parcel")

            @becomes(field=state, source="paid", target="cancelled")
            def cancel(self):
                Entry.objects.create(order=self.pk, kind="refund")

        class Plain(Order):
            pass

        class Guarded(ConcurrentTransitionMixin, Order):
            pass

        with connection.schema_editor() as editor:
            for model in (Entry, Plain, Guarded):
                editor.create_model(model)
        for name, model in (("plain", Plain), ("guarded", Guarded)):

            def setup(model=model):
                Entry.objects.all().delete()
                model.objects.create()
                connection.close()

            def become(state, model=model):
                """Ship or cancel the order, and return its new state."""
                try:
                    with transaction.atomic():
                        order = model.objects.get()
                        order.ship() if state == "shipped" else order.cancel()
                        order.save()
                        return order.state
                finally:
                    connection.close()

            calls = [(become, ("shipped",)), (become, ("cancelled",))]
            conninfo = f"host={host} user=postgres dbname=postgres"
            yield name, judged(setup, calls, conninfo, folder / name)


if __name__ == "__main__":
    print_reports("transitions", reports)
