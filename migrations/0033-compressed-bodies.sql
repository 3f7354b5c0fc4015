-- NULL: the body is as it came. Else the service has compressed it, by zstd, and it was so many bytes. Of one that is
-- empty, since it was erased, it says nothing.
ALTER TABLE webhooks ADD COLUMN zstd_of integer;
