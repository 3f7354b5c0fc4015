CREATE INDEX IF NOT EXISTS orders_to_change ON orders (changed_at) WHERE change = 'not_applied';
