-- Whose order it is stands in the contents alone: so erasing a member finds the orders without reading them all, and
-- with the contents it goes from here as well.
CREATE INDEX IF NOT EXISTS order_contents_of_member ON order_contents ((contents #>> '{member,id}'));
