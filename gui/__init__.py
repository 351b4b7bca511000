"""The window: shows events and gathers an experiment. Never touches the wire."""
