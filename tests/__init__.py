"""What the tests of a folder share ends with them where the folder is a package, such as `console`."""
