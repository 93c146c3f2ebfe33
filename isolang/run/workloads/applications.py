"""Defines well-known applications as workloads on keys named ``table/row/column``."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

from isolang.run.operation import Operation, Program, Read, Write
from isolang.run.settings import Shape
from isolang.run.workloads.invariants import OPENING
from isolang.run.workloads.workload import CONVERSATIONS, ProgramSource, Workload

Steps = Generator[Operation, Any, None]


def _add(key: str, amount: int, start: int = OPENING) -> Steps:
    """Read a number, add an amount to it, and write the sum."""
    has = yield Read(key)
    yield Write(key, (start if has is None else has) + amount)


class SmallBank(Workload):
    """Six kinds of transactions on checking and savings accounts (Alomari et al., ICDE 2008)."""

    name: ClassVar = "smallbank"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=1000, distribution="hotspot")
    min_keys: ClassVar = 2

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = tuple(
            f"{table}/{i}/balance" for table in ("checking", "savings") for i in range(self.keys)
        )

    def program(self, source: ProgramSource) -> Program:
        one, other = self.keys_of(source, 2)
        checking, savings = f"checking/{one}/balance", f"savings/{one}/balance"
        amount = source.random.randint(1, 20)
        kind = source.random.randrange(6)
        if kind == 0:
            return (Read(savings), Read(checking))
        if kind == 1:
            return _add(checking, amount)
        if kind == 2:
            return _add(savings, amount)
        if kind == 3:
            return self._amalgamate(savings, checking, f"checking/{other}/balance")
        if kind == 4:
            return self._write_check(savings, checking, amount)
        return self._pay(checking, f"checking/{other}/balance", amount)

    def _amalgamate(self, savings: str, checking: str, other: str) -> Steps:
        saved = yield Read(savings)
        has = yield Read(checking)
        yield Write(savings, 0)
        yield Write(checking, 0)
        total = sum(OPENING if x is None else x for x in (saved, has))
        yield from _add(other, total)

    def _write_check(self, savings: str, checking: str, amount: int) -> Steps:
        saved = yield Read(savings)
        has = yield Read(checking)
        total = sum(OPENING if x is None else x for x in (saved, has))
        fee = 1 if total < amount else 0
        yield Write(checking, (OPENING if has is None else has) - amount - fee)

    def _pay(self, checking: str, other: str, amount: int) -> Steps:
        has = yield Read(checking)
        if (OPENING if has is None else has) >= amount:
            yield Write(checking, (OPENING if has is None else has) - amount)
            yield from _add(other, amount)


class Twitter(Workload):
    """Cobra's C-Twitter: tweet, follow or unfollow, read a timeline; zipfian choice of users."""

    name: ClassVar = "twitter"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=1000, distribution="zipfian")
    followed: ClassVar = 8

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        users = range(self.keys)
        self.registers = (
            *(f"user/{i}/last" for i in users),
            *(f"user/{i}/tweets" for i in users),
            *(f"follow/{i}/{j}" for i in users for j in range(self.followed)),
        )

    def program(self, source: ProgramSource) -> Program:
        user, share = self.key(source), source.random.random()
        if share < 0.3:
            return self._tweet(user, source.value())
        slot = source.random.randrange(self.followed)
        if share < 0.5:
            return (Read(f"follow/{user}/{slot}"), Write(f"follow/{user}/{slot}", self.key(source)))
        return self._timeline(user)

    def _tweet(self, user: int, tweet: int) -> Steps:
        count = yield Read(f"user/{user}/tweets")
        yield Write(f"user/{user}/last", tweet)
        yield Write(f"user/{user}/tweets", (count or 0) + 1)

    def _timeline(self, user: int) -> Steps:
        for slot in range(self.followed):
            followed = yield Read(f"follow/{user}/{slot}")
            if followed is not None:
                yield Read(f"user/{followed}/last")


class Rubis(Workload):
    """Cobra's C-RUBiS, an auction: users view, bid, buy and comment; each user has ten items."""

    name: ClassVar = "rubis"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=2000, distribution="zipfian")

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._users = max(1, self.keys // 10)
        self.registers = (
            *(f"user/{i}/rating" for i in range(self._users)),
            *(f"item/{i}/{column}" for i in range(self.keys)
              for column in ("price", "bids", "quantity")),
        )  # fmt: skip

    def program(self, source: ProgramSource) -> Program:
        item, share = self.key(source), source.random.random()
        user = source.random.randrange(self._users)
        price, bids = f"item/{item}/price", f"item/{item}/bids"
        if share < 0.5:
            return (Read(price), Read(bids), Read(f"item/{item}/quantity"))
        if share < 0.75:
            return self._bid(price, bids, source.random.randint(1, 9))
        if share < 0.9:
            return _add(f"item/{item}/quantity", -1)
        return _add(f"user/{user}/rating", source.random.choice((-1, 1)), 0)

    def _bid(self, price: str, bids: str, more: int) -> Steps:
        yield from _add(price, more)
        yield from _add(bids, 1, 0)


class Tpcc(Workload):
    """TPC-C with one warehouse of ten districts, and its five transactions in the usual mix."""

    name: ClassVar = "tpcc"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=300)
    districts: ClassVar = 10
    items: ClassVar = 200
    orders: ClassVar = 50

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        districts, columns = range(self.districts), ("balance", "payments", "last_order")
        self.registers = (
            "warehouse/0/ytd",
            *(f"district/{d}/{c}" for d in districts for c in ("ytd", "next", "delivered")),
            *(f"customer/{d}.{i}/{c}" for d in districts for i in range(self.keys // 10)
              for c in columns),
            *(f"stock/{i}/quantity" for i in range(self.items)),
            *(f"order/{d}.{i}/{c}" for d in districts for i in range(self.orders)
              for c in ("customer", "carrier")),
        )  # fmt: skip

    def program(self, source: ProgramSource) -> Program:
        random = source.random
        share, district = random.random(), random.randrange(self.districts)
        number = random.randrange(self.keys // 10)
        customer = f"customer/{district}.{number}"
        if share < 0.45:
            items = random.sample(range(self.items), random.randint(5, 15))
            return self._new_order(district, number, customer, items)
        if share < 0.88:
            return self._payment(district, customer, random.randint(1, 5000))
        if share < 0.92:
            return self._order_status(district, customer)
        if share < 0.96:
            return self._delivery(district, random.randint(1, 10))
        return self._stock_level(district, random.sample(range(self.items), 10))

    def _order(self, district: int, number: int) -> str:
        return f"order/{district}.{number % self.orders}"

    def _new_order(self, district: int, number: int, customer: str, items: list[int]) -> Steps:
        yield Read("warehouse/0/ytd")
        has = yield Read(f"district/{district}/next")
        order = 1 if has is None else has
        yield Write(f"district/{district}/next", order + 1)
        for item in sorted(items):  # lock in a fixed order to avoid deadlocks
            quantity = yield Read(f"stock/{item}/quantity")
            quantity = OPENING if quantity is None else quantity
            yield Write(f"stock/{item}/quantity", quantity - 1 if quantity > 10 else quantity + 90)
        yield Write(f"{self._order(district, order)}/customer", number)
        yield Write(f"{customer}/last_order", order)

    def _payment(self, district: int, customer: str, amount: int) -> Steps:
        yield from _add("warehouse/0/ytd", amount, 0)
        yield from _add(f"district/{district}/ytd", amount, 0)
        yield from _add(f"{customer}/balance", -amount, 0)
        yield from _add(f"{customer}/payments", 1, 0)

    def _order_status(self, district: int, customer: str) -> Steps:
        yield Read(f"{customer}/balance")
        order = yield Read(f"{customer}/last_order")
        if order is not None:
            yield Read(f"{self._order(district, order)}/carrier")

    def _delivery(self, district: int, carrier: int) -> Steps:
        has = yield Read(f"district/{district}/next")
        done = yield Read(f"district/{district}/delivered")
        order = 1 if done is None else done + 1
        if order < (1 if has is None else has):
            number = yield Read(f"{self._order(district, order)}/customer")
            yield Write(f"{self._order(district, order)}/carrier", carrier)
            yield Write(f"district/{district}/delivered", order)
            if number is not None:
                yield from _add(f"customer/{district}.{number}/balance", 10, 0)

    def _stock_level(self, district: int, items: list[int]) -> Steps:
        yield Read(f"district/{district}/next")
        for item in items:
            yield Read(f"stock/{item}/quantity")
