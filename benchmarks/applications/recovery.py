"""Signs a client in with the recovery code of django-otp 1.7.5, as ``isocheck court`` asks.

The code is verified by the device's ``method`` alone, or by the library's ``function``, which locks
the device first.
"""

from __future__ import annotations

from applications import begin_django, run_command

begin_django(
    "django.contrib.auth", "django.contrib.contenttypes", "django_otp",
    "django_otp.plugins.otp_static",
)  # fmt: skip

from django.contrib.auth.models import User  # noqa: E402 - needs the settings
from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django_otp import verify_token  # noqa: E402
from django_otp.plugins.otp_static.models import StaticDevice  # noqa: E402

CODE = "abcd2345"


def setup():
    call_command("migrate", verbosity=0)
    user = User.objects.create(username="ann")
    device = StaticDevice.objects.create(user=user, name="recovery codes")
    device.token_set.create(token=CODE)


@transaction.atomic
def sign_in(way, client):
    """Return whether the code is accepted."""
    if way == "method":
        return StaticDevice.objects.get(user__username="ann").verify_token(CODE)
    user = User.objects.get(username="ann")
    device = StaticDevice(pk=1, user=user)
    return verify_token(user, device.persistent_id, CODE) is not None


if __name__ == "__main__":
    run_command(setup, sign_in)
