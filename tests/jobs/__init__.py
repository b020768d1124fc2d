"""The reference business: entry, services, and `content.article` from request to result."""
