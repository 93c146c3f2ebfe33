"""A service of FastAPI on SQLAlchemy with asyncio, recorded without a change."""

import asyncio
import re

import pytest
from support.source_lines import assert_names_lines

import isolang

fastapi = pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")
pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
pytest.importorskip("asyncpg")

from sqlalchemy import create_engine  # noqa: E402
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column  # noqa: E402


class Base(DeclarativeBase):
    """The service's classes."""


class Item(Base):
    """What is in stock."""

    __tablename__ = "item"
    id: Mapped[int] = mapped_column(primary_key=True)
    stock: Mapped[int]


def service(url, *, lock):
    """The service: each request sells one piece."""
    app = fastapi.FastAPI()
    engine = create_async_engine(url)

    @app.post("/items/{number}/sell")
    async def sell(number: int):
        async with AsyncSession(engine) as session:
            item = await session.get(Item, number, with_for_update=lock)
            if item.stock == 0:
                raise fastapi.HTTPException(409)
            await asyncio.sleep(0.01)  # another service is asked
            item.stock -= 1
            await session.commit()
            return {"sold": number}

    return app, engine


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("lock", [False, True])
def test_requests_at_the_same_time(server, isolation, lock, driver):
    """Without a lock one piece is sold twice, and the text has the lines; with it, nothing is."""
    engine = create_engine(server)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(Item.__table__.insert().values(id=1, stock=3))
    engine.dispose()
    watching = getattr(isolation, f"watch_{driver}")
    watch = watching(server.replace("+psycopg", ""))

    async def requests():
        app, engine = service(server.replace("psycopg", driver), lock=lock)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            answers = await asyncio.gather(*(client.post("/items/1/sell") for _ in range(5)))
        await engine.dispose()
        return sorted(answer.status_code for answer in answers)

    answers = asyncio.run(requests())
    assert watch.unseen == {}
    if lock:
        assert answers == [200, 200, 200, 409, 409]
        isolation.assert_level("sser")
    else:
        assert answers.count(200) > 3
        with pytest.raises(isolang.IsolationError, match="lost update") as error:
            isolation.assert_level("ser")
        begins = ("item = await session.get(", "await session.commit()")
        assert_names_lines(str(error.value), __file__, *begins)
        assert re.search(r"w\(item/1 \{stock: \d → \d\}\)", str(error.value))
