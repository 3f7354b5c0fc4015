-- Operators search orders by each word of a member's name, as it is heard on the telephone, and by the end of a telephone
-- number. `KEYS` in src/core/orders/member-keys.ts has the same expression; the search uses no index if they differ.
-- The previous version uses order_contents_of_contact, which a later release drops.
CREATE INDEX IF NOT EXISTS order_contents_of_words ON order_contents USING gin ((
  array_remove(string_to_array(left(regexp_replace(regexp_replace(lower(translate(
      regexp_replace(normalize(left((contents #>> '{member,name}'), 200), NFKD) COLLATE "C", '[\u0300-\u036f''’]', '', 'g'),
      'øØłŁđĐðÐıæÆœŒßς-‐–_,./()"ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ',
      'oollddddiaaoosσ          αβγδεζηθικλμνξοπρστυφχψωабвгдежзиклмнопрстуфхцчшщъыьэюя'
    )), '([aou])e', '\1', 'g'), 'ss', 's', 'g'), 200), ' '), '')
  || ARRAY[right((contents #>> '{member,phone}') COLLATE "C", 7),
           left(lower((contents #>> '{member,email}') COLLATE "C"), 200)])) WITH (fastupdate = off);
