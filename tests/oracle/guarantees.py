"""What the four session guarantees forbid, one by one."""

from __future__ import annotations

#: history, the guarantees that forbid it. Every transaction has one operation, as in the paper, or
#: is seen as a whole.
GUARANTEE_LITMUS = [
    ("w(x,1) -> r(x,nil)", "ryw"),
    ("w(x,1) -> w(x,2) -> r(x,1)", ""),
    ("w(x,1) || r(x,1) -> r(x,nil)", "mr"),
    ("w(x,1) || w(x,2) || r(x,1) -> r(x,2) -> r(x,1)", "mr"),
    ("w(x,1) -> w(y,1) || r(y,1) r(x,nil)", "mw"),
    ("w(x,1) -> w(x,2) w(y,1) || r(y,1) r(x,1)", "mw"),
    ("w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)", ""),
    ("w(x,1) || r(x,1) -> w(y,1) || r(y,1) r(x,nil)", "wfr"),
    ("w(x,1) || r(x,1) w(y,1) || r(y,1) r(x,nil)", "wfr"),
    ("w(x,1) || r(x,1) -> w(x,2) || r(x,2) -> r(x,1)", ""),
    ("w(x,1) || r(x,1) -> w(x,2) w(y,1) || r(y,1) r(x,1)", "wfr"),
    ("r(x,1) -> w(y,1) || r(y,1) w(x,1)", "wfr"),
    ("w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)", ""),
    ("r(x,nil) w(x,1) || r(x,nil) w(x,2)", ""),
    ("w(x,1) -> r(x,1) w(y,1) -> r(y,1) r(x,1)", ""),
]
