-- Operators search orders by their call-out code, by their POS id, and by their member's name, telephone number or
-- e-mail address. Nothing here is changed by a status.
CREATE INDEX IF NOT EXISTS orders_by_code ON orders ((call_out_code COLLATE "C"), created_at);
CREATE INDEX IF NOT EXISTS provider_orders_by_pos_id ON provider_orders (provider_order_id);
-- Without a list of pending entries: an insert must not be slow now and then.
CREATE INDEX IF NOT EXISTS order_contents_of_contact ON order_contents USING gin ((ARRAY[
  lower((contents #>> '{member,name}') COLLATE "C"), (contents #>> '{member,phone}') COLLATE "C",
  lower((contents #>> '{member,email}') COLLATE "C")])) WITH (fastupdate = off);
