"""The doctor: a survey of homes and archive, and the checks that make findings of it."""
