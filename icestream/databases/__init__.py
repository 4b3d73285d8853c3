"""Addresses of databases in JDBC's form, for connectors that reach one: lists of what they may say."""
