"""Items: JSON values under a namespace and a key, kept as memories, for frameworks that store by key."""

from memgraph.items.item import Found as Found, Item as Item, Put as Put
from memgraph.items.items import Items as Items
