"""The compiled code of view trees: the machine that runs triggers, and the maps that it works on.

A map holds a view: entries (key words, then payload words) in slots that never move, a probe table (``probing``), and
secondary indexes (``indexes``). Rows are grouped and summed (``grouping``), paired with entries and each other (``joins``),
multiplied (``products``) and added to entries (``entries``), as the instructions say that ``dispatch`` runs. ``transactions``
ends or undoes what they did. Kernels are given addresses; callers keep the memory behind them alive.
"""
