import pyarrow.compute as pc


def add_total(table, settings):
    """What an order costs; orders that cost nothing are dropped."""
    total = pc.multiply(table["price"], table["quantity"])
    table = table.append_column(settings.get("field", "total"), total)
    return table.filter(pc.greater(total, 0))
