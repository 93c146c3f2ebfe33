"""Django's tutorial application is recorded without a change."""

import re
import sys
import threading
from pathlib import Path

import pytest
from support.watched import operations, predicate_reads, transactions

import isolang
from isolang.errors import IsolangError
from isolang.testing.assertion import UndecidedError

django = pytest.importorskip("django")
psycopg = pytest.importorskip("psycopg")

from django.apps import AppConfig  # noqa: E402
from django.conf import settings  # noqa: E402


class Polls(AppConfig):
    """The application of the tutorial: this module."""

    name = "polls"
    path = str(Path(__file__).parent)


settings.configure(
    DATABASES={
        "lite": {"ENGINE": "django.db.backends.sqlite3"},
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "ATOMIC_REQUESTS": True,
        },
    },
    ALLOWED_HOSTS=["testserver"],
    INSTALLED_APPS=[Polls("polls", sys.modules[__name__])],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
LOGS_ROWS = True

from django.db import OperationalError, connection, connections, models, transaction  # noqa: E402
from django.db.models import F  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client, override_settings  # noqa: E402
from django.urls import path  # noqa: E402

from isolang.observe.unseen import OUTSIDE  # noqa: E402
from isolang.testing.django import watch  # noqa: E402


class Choice(models.Model):
    """What can be voted for."""

    text = models.CharField(max_length=200)
    votes = models.IntegerField(default=0)

    class Meta:
        """Of the tutorial's application."""

        app_label = "polls"


def vote(pk, between=lambda: None):
    """The view of the tutorial, in a transaction as ATOMIC_REQUESTS has it."""
    with transaction.atomic():
        choice = Choice.objects.get(pk=pk)
        between()
        choice.votes += 1
        choice.save()


def vote_view(request, pk):
    """The view itself: what the form sends is counted."""
    choice = Choice.objects.get(pk=pk)
    choice.votes += 1
    choice.save()
    return HttpResponse(choice.text)


URLS = (path("polls/<int:pk>/vote/", vote_view),)


def vote_with_a_lock(pk):
    """The row is locked first."""
    with transaction.atomic():
        choice = Choice.objects.select_for_update().get(pk=pk)
        choice.votes += 1
        choice.save()


def vote_in_the_database(pk):
    """As the tutorial's hint has it."""
    with transaction.atomic():
        Choice.objects.filter(pk=pk).update(votes=F("votes") + 1)


def vote_again_and_again(pk):
    """At SERIALIZABLE what the server refuses is done again."""
    while True:
        try:
            return vote(pk)
        except OperationalError:
            continue


def closing(function):
    """Each thread has a connection of its own, which it closes."""

    def called():
        try:
            function(1)
        finally:
            connection.close()

    return called


@pytest.fixture
def level(embedded, request):
    """The database of the settings, with one choice; at the level of the parameter."""
    chosen = getattr(request, "param", psycopg.IsolationLevel.READ_COMMITTED)
    connections.close_all()
    connection.settings_dict.update(HOST=str(embedded), OPTIONS={"isolation_level": chosen})
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS polls_choice")
    with connection.schema_editor() as editor:
        editor.create_model(Choice)
    Choice.objects.create(text="Not much")
    yield
    connections.close_all()


def test_a_lost_vote_is_found_with_its_lines(level, isolation):
    """At READ COMMITTED two votes count as one; the text names where they were read and saved."""
    seen = watch(isolation)
    both = threading.Barrier(2)
    isolation.concurrently(
        closing(lambda pk: vote(pk, both.wait)), closing(lambda pk: vote(pk, both.wait)), times=1
    )
    assert Choice.objects.get(pk=1).votes == 1
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    assert seen.unseen == {"autocommit": 1}  # of this test
    lines = Path(__file__).read_text().splitlines()
    for what in ("choice = Choice.objects.get(pk=pk)", "choice.save()"):
        number = next(n for n, line in enumerate(lines, 1) if line.strip() == what)
        assert f"test_django.py:{number} " in str(error.value)
    assert "r(polls.Choice/1 {votes: 0})" in str(error.value)
    assert "w(polls.Choice/1 {votes: 0 → 1})" in str(error.value)
    assert "site-packages" not in str(error.value)


def line_of(what):
    """The place of a statement of the view."""
    lines = Path(__file__).read_text().splitlines()
    begin = lines.index("def vote_view(request, pk):")
    number = next(n for n in range(begin, len(lines)) if lines[n].strip() == what) + 1
    return f"test_django.py:{number} "


def test_the_application_as_it_is_loses_votes(level, isolation):
    """Requests at the same time, and nothing in between: two lines find the race of its view."""

    def post():
        assert Client().post("/polls/1/vote/").content == b"Not much"

    with override_settings(ROOT_URLCONF=URLS):
        watch(isolation)
        isolation.concurrently(closing(lambda pk: post()), times=15, clients=3)
    assert Choice.objects.get(pk=1).votes < 45
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    for what in ("choice = Choice.objects.get(pk=pk)", "choice.save()"):
        assert line_of(what) in str(error.value)
    assert re.search(r"w\(polls.Choice/1 \{votes: \d+ → \d+\}\)", str(error.value))


@pytest.mark.parametrize(
    ("voting", "level"),
    [
        (vote_with_a_lock, psycopg.IsolationLevel.READ_COMMITTED),
        (vote_in_the_database, psycopg.IsolationLevel.READ_COMMITTED),
        (vote_again_and_again, psycopg.IsolationLevel.SERIALIZABLE),
    ],
    indirect=["level"],
)
def test_correct_views_are_not_accused(level, isolation, voting):
    """Locks, updates in the database and retries: no vote is lost, and nobody says so."""
    seen = watch(isolation)
    isolation.concurrently(closing(voting), times=5, clients=4)
    assert seen.unseen == {}
    (verdict,) = isolation.assert_level("sser")
    assert verdict.history.counts()["committed"] == 20
    assert Choice.objects.get(pk=1).votes == 20


def test_objects_that_are_created_and_savepoints(level, isolation):
    """The key that the database chose is known; what a savepoint took back was never written."""
    watch(isolation)
    with transaction.atomic():
        new = Choice.objects.create(text="The sky", pk=None)
        with transaction.atomic():
            Choice.objects.filter(pk=1).update(votes=5)
        with transaction.atomic():
            Choice.objects.filter(pk=1).update(votes=6)
            transaction.set_rollback(True)
    with transaction.atomic():
        assert sorted(choice.votes for choice in Choice.objects.all()) == [0, 5]
        Choice.objects.filter(pk=new.pk).delete()
    isolation.assert_level("sser")
    first, second = operations(isolation.history())
    assert first == [
        "w(polls.Choice/2 {id: 2, text: The sky, votes: 0})",
        "w(polls.Choice/1 {votes: 5})",
    ]
    assert second == [
        "r(polls.Choice/2 {id: 2, text: The sky, votes: 0})",
        "r(polls.Choice/1 {votes: 5})",
        "delete(polls.Choice/2)",
    ]
    assert isolation.unseen() == {}


def test_other_databases_are_refused(isolation):
    """Only PostgreSQL has xmin."""
    with pytest.raises(IsolangError, match="got sqlite for 'lite', expected postgresql"):
        watch(isolation, "lite")


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.SERIALIZABLE], indirect=True)
def test_nested_blocks_are_their_transactions(level, isolation):
    """All that is written stands behind savepoints; the database's log names the transaction."""
    seen = watch(isolation, versions=True)
    Choice.objects.create(pk=2, text="The sky")
    for first, second in ((1, 2), (2, 1)):
        with transaction.atomic():
            Choice.objects.get(pk=first)
            with transaction.atomic():
                Choice.objects.filter(pk__in=[1, 2]).update(votes=F("votes") + 1)
            with transaction.atomic():
                Choice.objects.filter(pk=second).update(votes=0)
                transaction.set_rollback(True)
    assert seen.unseen == {"autocommit": 1}  # of this test
    (verdict,) = isolation.assert_level("sser")
    assert verdict.history.counts()["committed"] == 3


@pytest.mark.parametrize(
    ("asks", "conditions", "unseen"),
    [
        (lambda: Choice.objects.filter(votes=0).count() < 5, 1, {}),
        (lambda: not Choice.objects.filter(text="none").exists(), 1, {}),
        (lambda: Choice.objects.filter(votes=0).first(), 1, {}),
        (lambda: Choice.objects.filter(pk=1, votes=0).exists(), 0, {}),
        (lambda: not Choice.objects.filter(pk=1, votes=9).exists(), 1, {}),
        (lambda: not Choice.objects.filter(pk=99).first(), 1, {}),
        (
            lambda: Choice.objects.select_for_update(skip_locked=True).filter(votes=0).first(),
            0,
            {},
        ),
        (lambda: Choice.objects.in_bulk([1]), 0, {}),
        (lambda: Choice.objects.filter(votes=0).update(votes=1), 1, {}),
        (lambda: Choice.objects.filter(pk=1).delete(), 0, {}),
    ],
)
def test_what_queries_ask(level, isolation, asks, conditions, unseen):
    """Keys that are found are read alone; other conditions are predicate reads, or counted."""
    seen = watch(isolation)
    with transaction.atomic():
        assert asks()
    history = isolation.history()
    assert seen.unseen == unseen
    assert len(predicate_reads(history)) == conditions
    assert all("test_django.py:" in example for example in seen.unseen.examples.values())
    assert isolang.check(history, "sser").outcome == "valid"


def test_a_block_from_before_the_watch(level, isolation):
    """The statements of a TestCase's transaction are counted; what threads do is recorded."""
    with transaction.atomic():
        Choice.objects.get(pk=1)
        seen = watch(isolation)
        Choice.objects.create(text="unseen")
        isolation.concurrently(closing(vote_with_a_lock), times=1)
    assert seen.unseen[OUTSIDE] >= 1
    assert "INSERT INTO" in seen.unseen.examples[OUTSIDE]
    assert "test_django.py:" in seen.unseen.examples[OUTSIDE]
    statuses = [status for status, _ in transactions(isolation.history())]
    assert statuses == ["committed"]
    with pytest.raises(UndecidedError, match="whose begin was not watched"):
        isolation.assert_level("ser")
    Choice.objects.count()  # the connection is as it was


RACES = {
    "count": lambda: Choice.objects.filter(votes__gte=7).count() < 2,
    "exists": lambda: not Choice.objects.filter(text="new").exists(),
    "first": lambda: Choice.objects.filter(votes__range=(7, 9)).exclude(text="old").first() is None,
}


def adding(asks, before=lambda: None, between=lambda: None):
    """A view that adds a choice if a condition finds none."""

    def view():
        with transaction.atomic():
            before()
            free = asks()
            between()
            if free:
                Choice.objects.create(text="new", votes=7)

    return view


@pytest.mark.parametrize("asks", RACES)
def test_what_two_views_did_not_find(level, isolation, asks):
    """At most two, a text that is there once, a free range: the condition is in the argument."""
    watch(isolation)
    both = threading.Barrier(2)
    view = adding(RACES[asks], between=both.wait)
    isolation.concurrently(closing(lambda pk: view()), times=1, clients=2)
    with pytest.raises(isolang.IsolationError, match="predicate write skew") as error:
        isolation.assert_level("ser")
    assert isolation.unseen() == {}
    assert "by SELECT" in " ".join(str(error.value).split())


@pytest.mark.parametrize("asks", RACES)
def test_what_views_ask_behind_a_lock(level, isolation, asks):
    """The row that everybody locks first makes them right, with nothing unseen."""
    watch(isolation)
    view = adding(RACES[asks], before=lambda: Choice.objects.select_for_update().get(pk=1))
    isolation.concurrently(closing(lambda pk: view()), times=2, clients=3)
    isolation.assert_level("ser")
    assert isolation.unseen() == {}
    assert Choice.objects.count() == (3 if asks == "count" else 2)


def test_a_queue(level, isolation):
    """With SKIP LOCKED each row is taken once."""
    Choice.objects.bulk_create(Choice(text=f"job {n}", votes=1) for n in range(6))
    watch(isolation)

    def work(pk):
        with transaction.atomic():
            jobs = Choice.objects.select_for_update(skip_locked=True).filter(votes=1)
            job = jobs.order_by("pk").first()
            job.votes = 2
            job.save()

    isolation.concurrently(closing(work), times=2, clients=3)
    isolation.assert_level("ser")
    assert isolation.unseen() == {}
    assert not Choice.objects.filter(votes=1).exists()
