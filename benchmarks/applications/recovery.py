"""Two clients sign in at the same moment with one recovery code of django-otp 1.7.5.

``python benchmarks/applications/recovery.py FOLDER`` starts a PostgreSQL server, and prints a
report for two ways to verify the code: the device's method alone, and the library's function, which
locks the device. It writes their histories, certificates and pages into the folder. The packages
are in ``requirements.txt`` beside this file.
"""

from __future__ import annotations

from applications import begin_django, judged, print_reports, with_server

APPS = (
    "django.contrib.auth", "django.contrib.contenttypes", "django_otp",
    "django_otp.plugins.otp_static",
)  # fmt: skip
CODE = "abcd2345"


def reports(folder):
    """Yield what two clients with one code do at the same time, verified in each way."""
    with with_server() as host:
        begin_django(host, *APPS)
        from django.contrib.auth.models import User
        from django.core.management import call_command
        from django.db import connection, transaction
        from django_otp import verify_token
        from django_otp.plugins.otp_static.models import StaticDevice

        call_command("migrate", verbosity=0)

        def setup():
            User.objects.all().delete()
            user = User.objects.create(username="ann")
            device = StaticDevice.objects.create(user=user, name="recovery codes")
            device.token_set.create(token=CODE)
            connection.close()

        def by_method(client):
            """Return whether the device accepts the code."""
            try:
                with transaction.atomic():
                    return StaticDevice.objects.get(user__username="ann").verify_token(CODE)
            finally:
                connection.close()

        def by_function(client):
            """Return whether the device, which is locked first, accepts the code."""
            try:
                user = User.objects.get(username="ann")
                device = StaticDevice.objects.only("id").get(user=user)
                return verify_token(user, device.persistent_id, CODE) is not None
            finally:
                connection.close()

        conninfo = f"host={host} user=postgres dbname=postgres"
        for name, sign_in in (("method", by_method), ("function", by_function)):
            calls = [(sign_in, ("laptop",)), (sign_in, ("phone",))]
            yield name, judged(setup, calls, conninfo, folder / name)


if __name__ == "__main__":
    print_reports("recovery", reports)
