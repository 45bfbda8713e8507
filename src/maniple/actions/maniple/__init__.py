"""Actions that only Maniple's own profile has."""
