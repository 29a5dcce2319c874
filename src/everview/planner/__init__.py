"""Plans of maintenance: hypergraphs and query classes, variable orders, view trees, what to materialize and what it costs."""
