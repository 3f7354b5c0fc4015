-- Operators search orders by their call-out code, by their POS id, and by their member's name, telephone number or
-- e-mail address. Nothing here is changed by a status.
CREATE INDEX IF NOT EXISTS orders_by_code ON orders ((call_out_code COLLATE "C"), created_at);
CREATE INDEX IF NOT EXISTS provider_orders_by_pos_id ON provider_orders (provider_order_id);
-- A key of an index must be short, and a name may not be.
-- Without a list of pending entries: an insert must not be slow now and then.
CREATE INDEX IF NOT EXISTS order_contents_of_contact ON order_contents USING gin ((ARRAY[
  left(lower((contents #>> '{member,name}') COLLATE "C"), 200), (contents #>> '{member,phone}') COLLATE "C",
  left(lower((contents #>> '{member,email}') COLLATE "C"), 200)])) WITH (fastupdate = off);
