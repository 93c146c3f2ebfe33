"""Three customers of a shop of django-oscar 4.2.1 check out at the same moment.

``python benchmarks/applications/shop.py FOLDER [SHOP…]`` starts a PostgreSQL server, and prints a
report for each of four shops: one with a single copy in stock, one with a thousand, one with an
offer that may be used once, and one with a voucher that may be used once. It writes their
histories, certificates and pages into the folder. The packages are in ``requirements.txt`` beside
this file. ``isocheck court`` asks for ``shop.py setup SHOP``, and for ``shop.py call SHOP``.
"""

from __future__ import annotations

import copy
import datetime
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

from applications import judged, print_reports, with_server

SHOPS = {
    "stock-1": (1, ""), "stock-1000": (1000, ""), "offer-once": (1000, "Site"),
    "voucher-once": (1000, "Voucher"),
}  # fmt: skip
"""The number of copies in stock, and the type of an offer that may be used once."""
CUSTOMERS = ("ann", "bob", "cy")
VOUCHER = "ONCE"


class Shop:
    """A shop in a database of its own, with customers who are about to confirm their orders."""

    clients: dict[str, object]

    def __init__(self, name, stock, offer):
        self.name, self._stock, self._offer_type = name.replace("-", "_"), stock, offer

    def setup(self):
        """Create a database with products and filled baskets."""
        connection = use("postgres")
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{self.name}" TEMPLATE migrated')
        use(self.name)
        self.fill()

    def fill(self):
        """Create the products, and fill the baskets."""
        from django.core import mail

        product = self._product("The last copy", self._stock)
        other = self._product("Another book", 100)
        if self._offer_type == "Voucher":
            self._voucher(self._offer())
        code = VOUCHER if self._offer_type == "Voucher" else ""
        self.clients = {who: basket(product, who, code) for who in CUSTOMERS}
        self.clients["dan"] = basket(other, "dan")
        self.checkout("dan")  # caches of the process are full from now on
        if self._offer_type == "Site":
            self._offer()
        mail.outbox = []

    def _product(self, title, stock):
        from oscar.core.loading import get_model

        model = get_model("catalogue", "ProductClass").objects
        kind, _ = model.get_or_create(name="book", slug="book")
        country = get_model("address", "Country").objects
        names = {"printable_name": "UK", "name": "UK", "is_shipping_country": True}
        country.get_or_create(iso_3166_1_a2="GB", defaults=names)
        product = get_model("catalogue", "Product").objects.create(
            product_class=kind, title=title, structure="standalone"
        )
        partner, _ = get_model("partner", "Partner").objects.get_or_create(name="p", code="p")
        get_model("partner", "StockRecord").objects.create(
            product=product, partner=partner, partner_sku=f"sku{product.pk}", price=10,
            num_in_stock=stock,
        )  # fmt: skip
        return product

    def _offer(self):
        from oscar.core.loading import get_model

        everything = get_model("offer", "Range").objects.create(
            name="everything", includes_all_products=True
        )
        condition = get_model("offer", "Condition").objects.create(
            range=everything, type="Count", value=1
        )
        benefit = get_model("offer", "Benefit").objects.create(
            range=everything, type="Percentage", value=10
        )
        most = 1 if self._offer_type == "Site" else None
        return get_model("offer", "ConditionalOffer").objects.create(
            name="once", offer_type=self._offer_type, condition=condition, benefit=benefit,
            max_global_applications=most,
        )  # fmt: skip

    def _voucher(self, offer):
        from django.utils import timezone
        from oscar.core.loading import get_model

        now, day = timezone.now(), datetime.timedelta(days=1)
        voucher = get_model("voucher", "Voucher").objects.create(
            name=VOUCHER, code=VOUCHER, usage="Single use", start_datetime=now - day,
            end_datetime=now + day,
        )  # fmt: skip
        voucher.offers.add(offer)

    def checkout(self, who):
        """Confirm a customer's order, and return what the browser gets."""
        from django.db import connection
        from django.test import Client

        client = Client()
        client.cookies = copy.deepcopy(self.clients[who].cookies)
        try:
            answer = client.post("/checkout/preview/", {"action": "place_order"})
            page = answer.content.decode()
            alerts = re.findall(r'class="alertinner[^>]*>\s*(.*?)\s*</div', page, re.DOTALL)
            return {"status": answer.status_code, "to": answer.get("Location"), "alerts": alerts}
        finally:
            connection.close()


def use(name):
    """Connect Django to another database of the server, and return the connection."""
    from django.conf import settings
    from django.db import connection

    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
    return connection


def basket(product, who, code=""):
    """Return the browser of a customer who has put a product, and a voucher, into the basket."""
    from django.test import Client

    client = Client()
    address = {"first_name": who, "last_name": "B", "line1": "1 Rd", "line4": "Town",
               "postcode": "N1 9RT", "country": "GB"}  # fmt: skip
    for path, form in (
        (product.get_absolute_url(), None),
        (f"/basket/add/{product.pk}/", {"quantity": 1}),
        *([("/basket/vouchers/add/", {"code": code})] if code else []),
        ("/checkout/", {"username": f"{who}@example.com", "options": "anonymous"}),
        ("/checkout/shipping-address/", address),
        ("/checkout/shipping-method/", None),
        ("/checkout/payment-method/", None),
        ("/checkout/preview/", None),
    ):
        answer = client.get(path) if form is None else client.post(path, form)
        assert answer.status_code in (200, 302), (path, answer.status_code)
    return client


def begin():
    """Set Django up for the server that libpq's environment names."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"
    sys.path.insert(0, str(Path(__file__).parent))
    import django

    django.setup()
    logging.disable(logging.CRITICAL)


def create_tables():
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def reports(folder, names):
    """Yield the name and the report of each shop."""
    with with_server() as host:
        os.environ |= {"PGHOST": host, "PGUSER": "postgres"}
        begin()
        with use("postgres").cursor() as cursor:
            cursor.execute("CREATE DATABASE migrated")
        use("migrated")
        create_tables()
        use("postgres")
        for name in names:
            shop = Shop(name, *SHOPS[name])
            calls = [(shop.checkout, (who,)) for who in CUSTOMERS]
            conninfo = f"host={host} user=postgres dbname={shop.name}"
            yield name, judged(shop.setup, calls, conninfo, folder / name, allow_unseen=True)


def run_command(action, name):
    """Prepare a shop in the database, or confirm the order of the customer of the input's line."""
    begin()
    shop = Shop(name, *SHOPS[name])
    cookies = Path(tempfile.gettempdir(), f"{name}-cookies.json")
    if action == "setup":
        create_tables()
        shop.fill()
        jars = {who: client.cookies.output(header="") for who, client in shop.clients.items()}
        cookies.write_text(json.dumps(jars))
    else:
        from django.test import Client

        who = input()
        shop.clients = {who: Client()}
        shop.clients[who].cookies.load(json.loads(cookies.read_text())[who])
        print(json.dumps(shop.checkout(who)))


if __name__ == "__main__":
    if sys.argv[1:2] in (["setup"], ["call"]):
        run_command(*sys.argv[1:])
    else:
        print_reports("shops", lambda folder: reports(folder, sys.argv[2:] or SHOPS))
