/**
 * Fixed X.509 certificates of a server and its nodes, valid from 2020 to 2119. Making keys would need
 * real time, and would give other keys each time. The simulated TLS uses no private keys, so these were not kept.
 */
const TEXTS = {
  authority: [
    'MIIBYjCCAQmgAwIBAgIRAJZ2oIiy5yCEoYoZ577u0R0wCgYIKoZIzj0EAwIwHjEcMBoGA1UEAxMT',
    'VHJvdXBlIGtlcm5lbCBub2RlczAgFw0yMDAxMDEwMDAwMDBaGA8yMTE5MTIzMTAwMDAwMFowHjEc',
    'MBoGA1UEAxMTVHJvdXBlIGtlcm5lbCBub2RlczBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABB+0',
    '+v9mHhyY+lRAk5gx8dOw/jh+8/fhG2QnwN9CY1daE/5rHiTABfRrTfu5/lPL68ZybT2iaye9Q//h',
    'Exhlv+mjJjAkMBIGA1UdEwEB/wQIMAYBAf8CAQAwDgYDVR0PAQH/BAQDAgIEMAoGCCqGSM49BAMC',
    'A0cAMEQCIEI/345gErZ2HGF6RKGNVMcVDBabxeYfJoLpuj0OgBgRAiB4T8hVQHSmiG+BW8R6XyBd',
    'm1Eh7oULQfuJpnNXK0Z63Q==',
  ],
  server: [
    'MIIBVTCB/aADAgECAhBZxgQ7PVqqdFl90k51ywISMAoGCCqGSM49BAMCMB4xHDAaBgNVBAMTE1Ry',
    'b3VwZSBrZXJuZWwgbm9kZXMwIBcNMjAwMTAxMDAwMDAwWhgPMjExOTEyMzEwMDAwMDBaMBExDzAN',
    'BgNVBAMTBnNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOhvNhEktyp3pLPdSV9zM6j3',
    'HrEMoLx4HP6qNENQlBTCvfu2hZemFdvNdFZTu5kqmGvGKrFaq2jHqi6JI0xM3I2jKDAmMAwGA1Ud',
    'EwEB/wQCMAAwFgYDVR0lAQH/BAwwCgYIKwYBBQUHAwEwCgYIKoZIzj0EAwIDRwAwRAIgSjtes6ag',
    'PjWzy2KDoJu3R7tqZLxta3qNR/xZkvD9mnsCIE43+AN2lhjckORKvTviOJ2j7wYtZIKMPGLXgs15',
    'TYDS',
  ],
  n1: [
    'MIIBUzCB+qADAgECAhEAz+n2dhOtaGrVqsWeJdH1/DAKBggqhkjOPQQDAjAeMRwwGgYDVQQDExNU',
    'cm91cGUga2VybmVsIG5vZGVzMCAXDTIwMDEwMTAwMDAwMFoYDzIxMTkxMjMxMDAwMDAwWjANMQsw',
    'CQYDVQQDEwJuMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJbUQcfl+Gukz0iP8o6Z4K0zoHzx',
    'NY3Xchf5rFMSWFsgeKqkLaf1XWQets5paA9Ft7di0XraSLkSHdWM46dO+KKjKDAmMAwGA1UdEwEB',
    '/wQCMAAwFgYDVR0lAQH/BAwwCgYIKwYBBQUHAwIwCgYIKoZIzj0EAwIDSAAwRQIhAITYefICmI+4',
    'XxYcih4QgHe6OsEvS7mGofcNJnKTMo7VAiB1QPlzqAUBtI04Qc1XBRau8n1HbK/Yc2QM27L9tupk',
    'Sg==',
  ],
  n2: [
    'MIIBUzCB+qADAgECAhEA24u5zPHUTMQTKiHtnSGmiDAKBggqhkjOPQQDAjAeMRwwGgYDVQQDExNU',
    'cm91cGUga2VybmVsIG5vZGVzMCAXDTIwMDEwMTAwMDAwMFoYDzIxMTkxMjMxMDAwMDAwWjANMQsw',
    'CQYDVQQDEwJuMjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKNBfK3IHhyXEgBepka8ZRVNm1/i',
    'Z1+yFmDGTx8vb46CfKAkFbn5+tXyron9BJgmnEKpoLkupEkMG4LsrmStwp6jKDAmMAwGA1UdEwEB',
    '/wQCMAAwFgYDVR0lAQH/BAwwCgYIKwYBBQUHAwIwCgYIKoZIzj0EAwIDSAAwRQIhAOt6JPm8TJGl',
    'Gk4+ZxA6gvFu/0kQkn5CYdrqCY/4ELdsAiBVYtXO9BtvwmT8KSAB1Gr2w1Prepd2gQt3CmQyWnTt',
    'iQ==',
  ],
  n3: [
    'MIIBUzCB+aADAgECAhB4euxmFZwqZ4wluKGAHpjFMAoGCCqGSM49BAMCMB4xHDAaBgNVBAMTE1Ry',
    'b3VwZSBrZXJuZWwgbm9kZXMwIBcNMjAwMTAxMDAwMDAwWhgPMjExOTEyMzEwMDAwMDBaMA0xCzAJ',
    'BgNVBAMTAm4zMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEDidjYMikEm7b9tiAXibIexm+Hcc8',
    'pmpfHVRDPYhXqJA3YOOVr+KFxkzBOCfVZFH5U2BVG4bflbM7DJraofi4k6MoMCYwDAYDVR0TAQH/',
    'BAIwADAWBgNVHSUBAf8EDDAKBggrBgEFBQcDAjAKBggqhkjOPQQDAgNJADBGAiEApR6cawtUODy9',
    'woPxcFN9VsYdSxpHdgd78FKz3Agd6NICIQCcEiSBmbZkZPe8I9Pu3OI2upb/JhzYsyEsnQhvDOXI',
    'zg==',
  ],
  n4: [
    'MIIBVDCB+qADAgECAhEA2bVN/akMnVk0T8UFfxIpzjAKBggqhkjOPQQDAjAeMRwwGgYDVQQDExNU',
    'cm91cGUga2VybmVsIG5vZGVzMCAXDTIwMDEwMTAwMDAwMFoYDzIxMTkxMjMxMDAwMDAwWjANMQsw',
    'CQYDVQQDEwJuNDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHWqebh3Oi4KHOlZX9fmX+81T0ul',
    'kCy1YjPAH8HWL4gdZ6t21ymzG7ZE3JAuFw1EKs0QS7YvoX2IDqZy7GllKHCjKDAmMAwGA1UdEwEB',
    '/wQCMAAwFgYDVR0lAQH/BAwwCgYIKwYBBQUHAwIwCgYIKoZIzj0EAwIDSQAwRgIhAOxgWCl7IAgW',
    'D1FWBwqz1/ogI/nlPr0dMrTMeE/r7rFNAiEAlgx6ewCbdfHICZWD2AUp+VW7Sh9zPWfKuy/RzHq7',
    'los=',
  ],
};

export const AUTHORITY = pemOf(TEXTS.authority);
export const SERVER = pemOf(TEXTS.server);
/** The certificates of nodes, in the order of the nodes. */
export const NODES = [TEXTS.n1, TEXTS.n2, TEXTS.n3, TEXTS.n4].map(pemOf);
/** Takes the place of every private key. */
export const NO_KEY = '-----BEGIN PRIVATE KEY-----\nnone\n-----END PRIVATE KEY-----';

function pemOf(lines: readonly string[]): string {
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----`;
}
