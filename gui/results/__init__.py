"""The page of a finished run: verdict, answers, and per operation table, chart and traffic."""
