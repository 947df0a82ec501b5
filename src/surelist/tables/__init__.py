"""Any table in; exact counts, order statistics and lazy shortlists out. No statistics here.

``sources`` turns paths and DataFrames into one kind of table, ``roles`` says which column is what,
``bad_rows`` counts rows and what is wrong with them, ``order_statistics`` finds exact order
statistics by counting passes, ``evidence`` hands all three to calibration and fetches whole pools,
``thresholds`` and ``shortlist`` apply filters to pools, ``arrays`` reads whole columns, ``profile``
looks a file over.
What one engine does differently from another is in ``engines``.
"""
