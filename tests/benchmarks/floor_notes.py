"""Small invented stores for calibrating the floor: notes of coding projects, preferences, and tasks of other matters."""

from __future__ import annotations

PREFERENCES = (
    ("Always use pnpm instead of npm", "install the dependencies of the web client"),
    ("I prefer tabs over spaces", "reformat this file so that the indentation is consistent"),
    ("Write commit messages in the imperative mood", "commit these changes with a good message"),
    ("Never push directly to main, open a pull request", "get this fix merged into the main branch"),
    ("Use pytest rather than unittest", "write tests for the invoice parser"),
    ("Answer in German unless I write in English", "which language should the reply be in?"),
    ("Dates are written as YYYY-MM-DD in our reports", "add a date column to the monthly report"),
    ("The staging server is staging.example.org", "deploy the branch to staging"),
    ("We use PostgreSQL 15, not MySQL", "write a migration that adds an index to the orders table in the database"),
    ("Keep functions under forty lines", "this function is very long, refactor it"),
    ("Type hints are required in all Python code", "add a helper function in Python that parses durations"),
    ("Log with structlog, never print", "add logging to the payment worker"),
    ("Dark mode is the default theme", "pick the colours of the settings page theme"),
    ("My manager is Priya and she approves releases", "who has to approve the release?"),
    ("Run make lint before every commit", "check the code style before I commit"),
    ("Docker images must be based on Alpine", "write a Dockerfile for the scheduler"),
    ("Do not add new dependencies without asking me", "use a library to parse the YAML files"),
    ("I like short answers without bullet lists", "explain briefly how the cache works"),
    ("API errors are returned as problem+json", "return a proper error from the endpoint when the user is missing"),
    ("Feature flags live in LaunchDarkly", "put the new checkout behind a feature flag"),
)
"""What somebody asked to remember, and a task in other words that it concerns."""

NOTES = {
    "deployment": (
        "The deploy to production failed because the disk of the build host was full; old images were pruned and it passed.",
        "Rolling back release 2.3 needed the database migration reverted first, otherwise the workers crashed on start.",
    ),
    "payments": (
        "The payment webhook was delivered twice; an idempotency key in the handler fixed the duplicate invoices.",
        "Retrying card charges without a back-off triggered the provider's rate limit of 100 requests a minute.",
        "Currency rounding differed between the cart and the invoice; both now use Decimal with two places.",
        "The test suite of the billing service needs a running Redis, or the lock tests hang for a minute.",
    ),
    "frontend": (
        "The search page re-rendered on every key press; debouncing the input by 200 ms made it usable on phones.",
        "Upgrading React from 17 to 18 broke the date picker, which relied on synchronous state updates.",
        "The bundle grew by 400 kB because moment was imported with all of its locales.",
        "Cypress tests were flaky in CI until animations were switched off.",
        "Server-side rendering fails if window is touched while a module is being imported.",
    ),
    "data": (
        "The nightly import of the customer CSV stopped at a byte order mark in the first line; the reader now strips it.",
        "Parquet files written by pandas had timestamps in nanoseconds, which Spark could not read.",
        "The warehouse query took nine minutes until the events table was partitioned by day.",
    ),
}
"""Stores by name: what happened in projects."""

KNOWN = {
    "deployment": (
        "deploy to production",
        "the build host has no space left on its disk",
        "roll back the release",
        "revert a database migration",
    ),
    "payments": (
        "customers get duplicate invoices from the webhook",
        "retry failed card charges",
        "fix the rounding of currency amounts on the invoice",
        "the billing tests hang",
    ),
    "frontend": (
        "the search page is slow while typing",
        "upgrade React",
        "reduce the bundle size",
        "make the Cypress tests stable in CI",
        "server-side rendering crashes on window",
    ),
    "data": (
        "import a customer CSV file",
        "Spark cannot read the Parquet files",
        "speed up the slow warehouse query",
    ),
}
"""Tasks that a store of notes knows something of."""

OTHER_MATTERS = (
    "bake a sourdough bread",
    "How do I bake bread with a crispy crust?",
    "plan a trip to Lisbon in spring",
    "write a birthday poem for my grandmother",
    "what should I feed a kitten that is eight weeks old?",
    "teach me the rules of chess openings",
    "find a good hiking trail in the Alps",
    "why do leaves turn red in autumn?",
    "recommend three novels about the sea",
    "how long do I have to boil an egg?",
    "tune a guitar by ear",
    "summarise the causes of the First World War",
    "which stretches help against back pain?",
    "grow tomatoes on a balcony",
    "translate a love letter into Italian",
    "prepare for a job interview as a nurse",
    "what is the capital of Mongolia?",
    "knit a scarf for the winter",
    "explain how vaccines work to a child",
    "choose a wine for grilled fish",
)
"""Tasks that no store here knows anything of."""

NO_MATTER = ("1", "2", "y", "explain", "continue", "stop", "fix it")
"""Tasks that name no matter."""

OTHER_LANGUAGES = (
    "Schreibe ein Gedicht über den Herbst für meine Großmutter",
    "Wie backe ich ein Sauerteigbrot mit knuspriger Kruste?",
    "写一首关于秋天的诗",
    "如何烤面包",
    "Напиши стихотворение об осени",
)
"""Tasks of other matters, in languages that no note is in and the packaged model does not cover."""
