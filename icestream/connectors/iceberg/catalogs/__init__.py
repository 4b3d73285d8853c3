"""Catalogs: opened by their Java names, guarded, with logins and signatures."""
