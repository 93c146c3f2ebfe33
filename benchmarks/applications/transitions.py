"""Ships or cancels an order, a model of django-fsm-2 4.2.4, as ``isocheck court`` asks.

The model is ``plain``, or ``guarded`` by the library's ``ConcurrentTransitionMixin``.
"""

from __future__ import annotations

from applications import begin_django, run_command

begin_django("django_fsm")

from django.db import connection, models, transaction  # noqa: E402 - needs the settings
from django_fsm import ConcurrentTransitionMixin, FSMField  # noqa: E402
from django_fsm import transition as becomes  # noqa: E402


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


MODELS = {"plain": Plain, "guarded": Guarded}


def setup():
    with connection.schema_editor() as editor:
        for model in (Entry, *MODELS.values()):
            editor.create_model(model)
    for model in MODELS.values():
        model.objects.create()


def become(model, name):
    """Ship or cancel the order, and return its new state."""
    with transaction.atomic():
        order = MODELS[model].objects.get(pk=1)
        getattr(order, name)()
        order.save()
    return order.state


if __name__ == "__main__":
    run_command(setup, become)
