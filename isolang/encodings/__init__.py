"""How a problem becomes solver input; the event graph is built natively, beside its solver."""
