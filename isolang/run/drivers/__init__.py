"""What is known of packages that databases are spoken to with: one file each.

Of those with DB-API connections, how they commit and roll back, and what their errors mean; of
others, the requests.

The adapters use them, and the recorder, for connections of people's own programs.
"""
