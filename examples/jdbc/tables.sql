CREATE TABLE users (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT
);
CREATE TABLE orders (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES users (id),
    amount DOUBLE PRECISION NOT NULL,
    placed TIMESTAMP NOT NULL
);
INSERT INTO users (name, email) VALUES
    ('Ada', 'ada@example.com'),
    ('Grace', NULL);
INSERT INTO orders (user_id, amount, placed) VALUES
    (1, 12.5, '2026-11-16 09:00:00'),
    (2, 99, '2026-11-16 09:00:01.5'),
    (1, 3, '2026-11-16 09:00:02');
